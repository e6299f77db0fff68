__kernel void A_decoder(void) {
    int window[8] = {0};
    int first = 0;
    int last = 0;
    int level = 0;
    int lines = 0;
    int rows = 0;
    int sent = 0;
    int left[2] = {0};
    int current[2] = {0};
    uchar served[2] = {0};
    int mode = 0;
    while (mode >= 0) {
        switch (mode) {
        case 0: {  // deal
            int left_0 = left[0];
            int left_1 = left[1];
            int current_0 = current[0];
            int current_1 = current[1];
            bool served_0 = served[0];
            bool served_1 = served[1];
            int ahead_0 = window[first & 7];
            bool free_0 = left_0 == 0 && served_0 == false;
            bool takes_0 = free_0 && ahead_0 != -2;
            int number_0 = rows + 1;
            bool held_0 = false || (takes_0 && ahead_0 == -1);
            int used_0 = takes_0 ? 1 : 0;
            int ahead_1 = window[(first + used_0) & 7];
            bool free_1 = left_1 == 0 && served_1 == false;
            bool takes_1 = free_1 && held_0 == false && ahead_1 != -2;
            int number_1 = rows + 1 + used_0;
            bool held_1 = held_0 || (takes_1 && ahead_1 == -1);
            int used_1 = used_0 + (takes_1 ? 1 : 0);
            int row_0 = takes_0 ? number_0 : free_0 ? 0 : current_0;
            int row_1 = takes_1 ? number_1 : free_1 ? 0 : current_1;
            int used = used_1;
            bool whole = held_1 == false;
            if (level < 4 && lines < 4) {
                int length_0 = read_channel_intel(A_decoder_length_0);
                mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
                int length_1 = read_channel_intel(A_decoder_length_1);
                mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
                if (level < 2) {
                    // a line
                    first = first & 7;
                    level = level + 2;
                    window[last] = length_0;
                    window[last + 1] = length_1;
                    last = (last + 2) & 7;
                    lines = lines + 1;
                    mode = 0;
                } else if (whole == false) {
                    // empty rows and a line
                    bool filled_0 = takes_0 && ahead_0 != -1;
                    left[0] = filled_0 ? ahead_0 : left_0;
                    current[0] = filled_0 ? number_0 : current_0;
                    served[0] = served_0 || filled_0;
                    bool filled_1 = takes_1 && ahead_1 != -1;
                    left[1] = filled_1 ? ahead_1 : left_1;
                    current[1] = filled_1 ? number_1 : current_1;
                    served[1] = served_1 || filled_1;
                    first = (first + used) & 7;
                    level = level + (2 - used);
                    window[last] = length_0;
                    window[last + 1] = length_1;
                    last = (last + 2) & 7;
                    lines = lines + 1;
                    rows = rows + used;
                    mode = 0;
                } else if (sent != 5) {
                    // a step and a line
                    left[0] = takes_0 ? ahead_0 : (free_0 || served_0) ? left_0 : left_0 - 1;
                    current[0] = row_0;
                    served[0] = false;
                    left[1] = takes_1 ? ahead_1 : (free_1 || served_1) ? left_1 : left_1 - 1;
                    current[1] = row_1;
                    served[1] = false;
                    first = (first + used) & 7;
                    level = level + (2 - used);
                    window[last] = length_0;
                    window[last + 1] = length_1;
                    last = (last + 2) & 7;
                    lines = lines + 1;
                    rows = rows + used;
                    sent = sent + 1;
                    write_channel_intel(multiplier_row_0, row_0);
                    write_channel_intel(multiplier_row_1, row_1);
                    mode = 0;
                } else if (lines == 3) {
                    // the last step and a line, all lines
                    write_channel_intel(multiplier_row_0, row_0);
                    write_channel_intel(multiplier_row_1, row_1);
                    mode = -1;
                } else {
                    // the last step and a line
                    lines = lines + 1;
                    write_channel_intel(multiplier_row_0, row_0);
                    write_channel_intel(multiplier_row_1, row_1);
                    mode = 1;
                }
            } else if (whole == false) {
                // empty rows
                bool filled_0 = takes_0 && ahead_0 != -1;
                left[0] = filled_0 ? ahead_0 : left_0;
                current[0] = filled_0 ? number_0 : current_0;
                served[0] = served_0 || filled_0;
                bool filled_1 = takes_1 && ahead_1 != -1;
                left[1] = filled_1 ? ahead_1 : left_1;
                current[1] = filled_1 ? number_1 : current_1;
                served[1] = served_1 || filled_1;
                first = (first + used) & 7;
                level = level + (0 - used);
                rows = rows + used;
                mode = 0;
            } else if (sent != 5) {
                // a step
                left[0] = takes_0 ? ahead_0 : (free_0 || served_0) ? left_0 : left_0 - 1;
                current[0] = row_0;
                served[0] = false;
                left[1] = takes_1 ? ahead_1 : (free_1 || served_1) ? left_1 : left_1 - 1;
                current[1] = row_1;
                served[1] = false;
                first = (first + used) & 7;
                level = level + (0 - used);
                rows = rows + used;
                sent = sent + 1;
                write_channel_intel(multiplier_row_0, row_0);
                write_channel_intel(multiplier_row_1, row_1);
                mode = 0;
            } else if (lines == 4) {
                // the last step, all lines
                write_channel_intel(multiplier_row_0, row_0);
                write_channel_intel(multiplier_row_1, row_1);
                mode = -1;
            } else {
                // the last step
                write_channel_intel(multiplier_row_0, row_0);
                write_channel_intel(multiplier_row_1, row_1);
                mode = 1;
            }
            break;
        }
        case 1: {  // rest
            int length_0 = read_channel_intel(A_decoder_length_0);
            mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
            int length_1 = read_channel_intel(A_decoder_length_1);
            mem_fence(CLK_GLOBAL_MEM_FENCE | CLK_CHANNEL_MEM_FENCE);
            if (lines != 3) {
                // drop a line
                lines = lines + 1;
                mode = 1;
            } else {
                // drop the last line
                mode = -1;
            }
            break;
        }
        }
    }
}
